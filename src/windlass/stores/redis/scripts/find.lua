-- ARGV: status, queue and type or nothing for each, limit, the id to go on after or nothing. Answers id and record of
-- each, newest first. Only reads: merges the lists of every status, queue and type that match.
local status, queue, type_, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local before = ARGV[5] == '' and '+' or '(' .. ARGV[5]
local ids = {}
for _, named in ipairs(redis.call('HKEYS', P .. 'counts')) do
  local of = {}
  for part in string.gmatch(named, '[^' .. SEP .. ']+') do
    of[#of + 1] = part
  end
  if (status == '' or status == of[1]) and (queue == '' or queue == of[2]) and (type_ == '' or type_ == of[3]) then
    for _, id in ipairs(redis.call('ZREVRANGEBYLEX', P .. 'v:' .. named, before, '-', 'LIMIT', 0, limit)) do
      ids[#ids + 1] = id
    end
  end
end
table.sort(ids, function(one, other) return one > other end)
local told = {}
for at = 1, math.min(limit, #ids) do
  local record = redis.call('GET', P .. 'j:' .. ids[at])
  if record then
    told[#told + 1] = ids[at]
    told[#told + 1] = record
  end
end
return told
