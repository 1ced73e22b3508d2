"""Images inside large files (tar, Parquet, Arrow), read where they are: nothing is unpacked."""
