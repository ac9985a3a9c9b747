DROP INDEX jobs_foreign;
COMMENT ON TABLE offers IS 'What workers offer, each as its catalogue said at its start; removed when it says goodbye.';
