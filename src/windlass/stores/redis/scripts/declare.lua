-- ARGV: whether a worker has started with these, ms after which what nobody told of is forgotten, how many of that at once;
-- then type, fingerprint, version and text of each. Of a type, `types:<type>` has first and last seen, when announced, version
-- and text by fingerprint; `types` has all of them by when they were last seen.
local announce, since, most = ARGV[1] == '1', now - tonumber(ARGV[2]), tonumber(ARGV[3])

-- As readers sort them: announced last, then by fingerprint.
local function newest(type_)
  local found, first, at = redis.call('HGETALL', P .. 'types:' .. type_), nil, nil
  for place = 1, #found, 2 do
    local announced = tonumber(split(found[place + 1])[3])
    if not at or announced > at or announced == at and found[place] < first then
      first, at = found[place], announced
    end
  end
  return first
end

local put, before = {}, {}
for at = 4, #ARGV, 4 do
  put[ARGV[at] .. SEP .. ARGV[at + 1]] = true
  before[ARGV[at]] = newest(ARGV[at]) or ''
end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', P .. 'types', '-inf', digits[since], 'LIMIT', 0, most)) do
  if not put[name] then
    local type_, fingerprint = string.match(name, '^(.*)' .. SEP .. '(.*)$')
    redis.call('HDEL', P .. 'types:' .. type_, fingerprint)
    redis.call('ZREM', P .. 'types', name)
  end
end
for at = 4, #ARGV, 4 do
  local type_, fingerprint, version, text = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local found = redis.call('HGET', P .. 'types:' .. type_, fingerprint)
  local known = found and split(found)
  local first, announced = known and known[1] or NOW, known and not announce and known[3] or NOW
  redis.call('HSET', P .. 'types:' .. type_, fingerprint, packed({first, NOW, announced, version, text}))
  redis.call('ZADD', P .. 'types', NOW, type_ .. SEP .. fingerprint)
end
for type_, first in pairs(before) do
  if newest(type_) ~= first then
    publish('t', 1, '')
    break
  end
end
return 1
