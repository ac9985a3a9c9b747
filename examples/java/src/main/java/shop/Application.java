package shop;

import static org.springframework.beans.factory.support.BeanDefinitionBuilder.rootBeanDefinition;

import java.net.URI;
import java.util.List;
import javax.sql.DataSource;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.http.converter.json.MappingJackson2HttpMessageConverter;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.context.WebApplicationContext;
import org.springframework.web.context.support.GenericWebApplicationContext;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.mvc.method.annotation.ExceptionHandlerExceptionResolver;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerAdapter;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;
import org.springframework.web.servlet.mvc.support.DefaultHandlerExceptionResolver;

/** Runs the service on Jetty. What Spring Boot makes by itself is written out here: Debian does not package it. */
public final class Application {
    private Application() {}

    public static void main(String[] arguments) throws Exception {
        DataSource dataSource = dataSource(URI.create(System.getenv("DATABASE_URL")));
        Orders orders = new Orders(
                new JdbcTemplate(dataSource), new TransactionTemplate(new DataSourceTransactionManager(dataSource)));
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8000"));
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        connector.setPort(port);
        server.addConnector(connector);
        new ServletContextHandler(server, "/").addServlet(new ServletHolder(new DispatcherServlet(web(orders))), "/");
        server.start();
        System.out.println("running on http://127.0.0.1:" + connector.getLocalPort());
        server.join();
    }

    /** A new connection for each transaction; a real service has a pool. */
    private static DataSource dataSource(URI url) {
        PGSimpleDataSource dataSource = new PGSimpleDataSource();
        dataSource.setServerNames(new String[] {url.getHost()});
        dataSource.setPortNumbers(new int[] {url.getPort() < 0 ? 5432 : url.getPort()});
        dataSource.setDatabaseName(url.getPath().substring(1));
        String[] user = url.getUserInfo() == null ? new String[] {"postgres"} : url.getUserInfo().split(":", 2);
        dataSource.setUser(user[0]);
        dataSource.setPassword(user.length > 1 ? user[1] : null);
        return dataSource;
    }

    /** The parts of Spring MVC that let a controller answer with JSON. */
    private static WebApplicationContext web(Object controller) {
        GenericWebApplicationContext context = new GenericWebApplicationContext();
        context.getBeanFactory().registerSingleton("controller", controller);
        register(context, RequestMappingHandlerMapping.class, false);
        register(context, RequestMappingHandlerAdapter.class, true);
        register(context, ExceptionHandlerExceptionResolver.class, true);
        register(context, DefaultHandlerExceptionResolver.class, false);
        return context;
    }

    private static void register(GenericWebApplicationContext context, Class<?> part, boolean writesJson) {
        var definition = rootBeanDefinition(part);
        if (writesJson) {
            definition.addPropertyValue("messageConverters", List.of(new MappingJackson2HttpMessageConverter()));
        }
        context.registerBeanDefinition(part.getName(), definition.getBeanDefinition());
    }
}
