-- ARGV: id of a request, mark of the attempt, then `answer` and the answer, `release` or `forget`. Answers whether the request
-- was that attempt's still.
local key, word = P .. 'request:' .. ARGV[1], ARGV[3]
local found = redis.call('GET', key)
local known = found and split(found)
if not known or known[3] ~= ARGV[2] then
  return 0
end
if known[5] ~= '' then
  return word == 'answer' and known[5] == ARGV[4] and 1 or 0
end
if word == 'forget' then
  redis.call('DEL', key)
  return 1
end
go_on_when_full()
local answer = word == 'answer' and ARGV[4] or ''
redis.call('SET', key, packed({known[1], known[2], known[3], word == 'release' and NOW or known[4], answer}), 'KEEPTTL')
return 1
