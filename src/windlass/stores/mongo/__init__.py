"""Jobs in MongoDB, through pymongo's asynchronous client."""
