-- Shared by migrate.lua, claim.lua and acquire.lua: where tokens begin on this server.
--
-- A server that takes another's place, or comes back without its last moments, does not know of every token that was
-- handed out, and must not hand out any of those again. So it begins at its clock, far above what is reached by counting.
local function this_server()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
end

local function begin_tokens(server, first)
  go_on_when_full()
  redis.call('HSET', P .. 'meta', 'server', server, 'tokens', digits[first])
  return first
end

local function first_token()
  local server = this_server()
  local known = redis.call('HMGET', P .. 'meta', 'server', 'tokens')
  return known[1] == server and tonumber(known[2]) or begin_tokens(server, now)
end
