"""Programs: the Wengert list of a whole function, or of the body of a loop or branch; how it is traced and run again."""
