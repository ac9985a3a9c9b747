package dev.sexton.client;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.transaction.annotation.AnnotationTransactionAttributeSource;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.interceptor.TransactionInterceptor;

/** The documented way with Spring: DataSourceUtils gives the connection of the {@code @Transactional} method. */
final class SpringTransaction {
    private SpringTransaction() {}

    /** An application's service, which writes its own row and enqueues. */
    public interface Orders {
        Enqueued place(String job, String key, boolean fail) throws SQLException;
    }

    @Transactional(rollbackFor = Exception.class)
    static class TransactionalOrders implements Orders {
        private final DataSource dataSource;
        private final JdbcTemplate jdbc;

        TransactionalOrders(DataSource dataSource) {
            this.dataSource = dataSource;
            this.jdbc = new JdbcTemplate(dataSource);
        }

        @Override
        public Enqueued place(String job, String key, boolean fail) throws SQLException {
            // The row stands for the application's own, in the same transaction.
            jdbc.update("UPDATE sexton.jobs SET description = ? WHERE name = ?", key, job);
            Connection connection = DataSourceUtils.getConnection(dataSource);
            try {
                Enqueued answer = SextonClient.enqueue(connection, Enqueue.job(job).key(key));
                if (fail) {
                    throw new IllegalStateException("the order is refused");
                }
                return answer;
            } finally {
                DataSourceUtils.releaseConnection(connection, dataSource);
            }
        }
    }

    /** What is wrong with commits and rollbacks of Spring; an empty list if nothing is. */
    static List<String> problems(String run) throws Exception {
        List<String> problems = new ArrayList<>();
        String job = run + ".other";
        DataSource dataSource = new DriverManagerDataSource(Conformance.url());
        // What @EnableTransactionManagement sets up, without a context: Debian's Spring cannot subclass classes of Java 17.
        ProxyFactory proxy = new ProxyFactory(new TransactionalOrders(dataSource));
        proxy.addAdvice(new TransactionInterceptor(
                new DataSourceTransactionManager(dataSource), new AnnotationTransactionAttributeSource()));
        Orders orders = (Orders) proxy.getProxy();
        orders.place(job, "spring-committed", false);
        try {
            orders.place(job, "spring-rolled-back", true);
            problems.add("no exception");
        } catch (IllegalStateException expected) {
            // The transaction is rolled back.
        }
        try (Connection connection = Conformance.connect()) {
            if (SextonClient.execution(connection, job, "spring-committed") == null) {
                problems.add("the commit left no execution");
            }
            if (SextonClient.execution(connection, job, "spring-rolled-back") != null) {
                problems.add("the rollback left an execution");
            }
            String sql = "SELECT description FROM sexton.jobs WHERE name = :value";
            if (!"spring-committed".equals(Conformance.sql(connection, sql, job))) {
                problems.add("the application's row is not the one that was committed");
            }
        }
        return problems;
    }
}
