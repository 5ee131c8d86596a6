"""Programs: the Wengert list of a whole function or of a part of one; how it is traced and run again."""
