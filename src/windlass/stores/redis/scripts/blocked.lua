-- ARGV: how many of each line, the id of the job they stand behind and when it was queued, or nothing, then the lines.
-- Answers their ids, line by line. Only reads.
local n, after, queued_at = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local found = {}
for at = 4, #ARGV do
  local key, first = P .. 'b:' .. ARGV[at], 0
  if after ~= '' then
    -- One that has left meanwhile: those who came in the same moment as it are told of again.
    local place = redis.call('ZRANK', key, after)
    first = place and place + 1 or redis.call('ZCOUNT', key, '-inf', '(' .. queued_at)
  end
  for _, id in ipairs(redis.call('ZRANGE', key, first, first + n - 1)) do
    found[#found + 1] = id
  end
end
return found
