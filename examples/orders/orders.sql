CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY, cents int);
