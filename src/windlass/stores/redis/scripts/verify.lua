-- ARGV: layout. Answers in words what differs: the layout, and lists that do not hold what is counted. Only reads.
local told = {}
if redis.call('HGET', P .. 'meta', 'layout') ~= ARGV[1] then
  told[1] = 'the layout of the keys is not written down as windlass made it'
end
local counts = redis.call('HGETALL', P .. 'counts')
for at = 1, #counts, 2 do
  local listed = redis.call('ZCARD', P .. 'v:' .. counts[at])
  if listed ~= tonumber(counts[at + 1]) then
    local named = string.gsub(counts[at], SEP, ' ')
    told[#told + 1] = 'the list ' .. named .. ' holds ' .. listed .. ' jobs, counted are ' .. counts[at + 1]
  end
end
return told
