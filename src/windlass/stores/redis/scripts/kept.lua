-- ARGV: ids. Answers names and values of what each job has kept. Only reads.
local kept = {}
for at, id in ipairs(ARGV) do
  kept[at] = redis.call('HGETALL', P .. 'k:' .. id)
end
return kept
