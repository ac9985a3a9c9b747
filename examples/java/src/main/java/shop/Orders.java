package shop;

import dev.sexton.client.Enqueue;
import dev.sexton.client.Enqueued;
import dev.sexton.client.SextonClient;
import dev.sexton.client.SextonException;
import java.sql.Connection;
import java.util.Map;
import java.util.UUID;
import org.springframework.http.HttpStatus;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** Takes orders: each order and the job that charges it are written in one transaction. */
@RestController
public class Orders {
    private final JdbcTemplate jdbc;
    private final TransactionTemplate transaction;

    public Orders(JdbcTemplate jdbc, TransactionTemplate transaction) {
        this.jdbc = jdbc;
        this.transaction = transaction;
    }

    public record NewOrder(int cents) {}

    public record Placed(long order, UUID execution) {}

    @PostMapping("/orders")
    @ResponseStatus(HttpStatus.CREATED)
    public Placed create(@RequestBody NewOrder fresh) {
        // Returning from the block commits, an exception rolls back.
        return transaction.execute(status -> {
            long order = jdbc.queryForObject(
                    "INSERT INTO orders (cents) VALUES (?) RETURNING id", Long.class, fresh.cents());
            Enqueue charge = Enqueue.job("billing.charge")
                    .params(Map.of("order", order, "cents", fresh.cents()))
                    .key("order-" + order);
            // The connection on which the order was written.
            Enqueued answer = jdbc.execute((Connection connection) -> SextonClient.enqueue(connection, charge));
            return new Placed(order, answer.executionId());
        });
    }

    @ExceptionHandler(SextonException.PausedJob.class)
    @ResponseStatus(HttpStatus.SERVICE_UNAVAILABLE)
    public Map<String, String> paused() {
        return Map.of("detail", "billing is paused; try again later");
    }
}
