DROP TABLE sweep_kept;
