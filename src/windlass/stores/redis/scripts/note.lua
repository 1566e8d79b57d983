-- ARGV: ms that entries are kept, how many older ones are removed at once; then id, actor, action, object, origin and details
-- of each. `audited` has the entries by id, `audit` the ids by time, and `audit:<field>:<value>` those of one value.
local function lists(entry)
  return {
    P .. 'audit', P .. 'audit:actor:' .. entry[2], P .. 'audit:action:' .. entry[3], P .. 'audit:object:' .. entry[4],
  }
end

local old = digits[now - tonumber(ARGV[1])]
for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'audit', '-inf', old, 'LIMIT', 0, ARGV[2])) do
  local record = redis.call('HGET', P .. 'audited', id)
  for _, list in ipairs(record and lists(split(record)) or {P .. 'audit'}) do
    redis.call('ZREM', list, id)
  end
  redis.call('HDEL', P .. 'audited', id)
end
for at = 3, #ARGV, 6 do
  local id = ARGV[at]
  local entry = {NOW, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]}
  if redis.call('HSETNX', P .. 'audited', id, packed(entry)) == 1 then
    for _, list in ipairs(lists(entry)) do
      redis.call('ZADD', list, NOW, id)
    end
  end
end
return 1
