// Says folder, on purpose.
