-- ARGV: version, layout. Answers the version found; a newer one is left as it is.
local found = tonumber(redis.call('HGET', P .. 'meta', 'schema') or 0)
if found < tonumber(ARGV[1]) then
  redis.call('HSET', P .. 'meta', 'schema', ARGV[1], 'layout', ARGV[2])
end
if found == 0 then
  redis.call('HSET', P .. 'meta', 'indexed', 1)
  begin_tokens(this_server(), 1)
end
return found
