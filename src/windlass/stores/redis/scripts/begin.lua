-- ARGV: id of a request, fingerprint, first id, mark, ms that it is held, ms that it is kept. Mirrors
-- contract.requests.judge; answers a word and what goes with it: begun and its first id, answered and the answer, under way
-- and ms, other. `request:<id>` has fingerprint, first id, mark, until when it is held, and the answer.
local key, held = P .. 'request:' .. ARGV[1], digits[now + tonumber(ARGV[5])]
local found = redis.call('GET', key)
if not found then
  redis.call('SET', key, packed({ARGV[2], ARGV[3], ARGV[4], held, ''}), 'PX', ARGV[6])
  return {'begun', ARGV[3]}
end
local known = split(found)
if known[1] ~= ARGV[2] then
  return {'other', ''}
end
if known[5] ~= '' then
  return {'answered', known[5]}
end
local left = tonumber(known[4]) - now
if left > 0 and known[3] ~= ARGV[4] then
  return {'under way', digits[left]}
end
redis.call('SET', key, packed({ARGV[2], known[2], ARGV[4], held, ''}), 'KEEPTTL')
return {'begun', known[2]}
