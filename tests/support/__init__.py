"""What tests share: real servers, and waiting."""
