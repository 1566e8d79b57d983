-- ARGV: list, the id to go on after or nothing, how many to look at, how many to answer (0: only count), then place and
-- value of each field that must match. Answers the id to go on after, or nothing at the end; how many matched; id and
-- record of each. Only reads.
local before = ARGV[2] == '' and '+' or '(' .. ARGV[2]
local looked, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
local ids = redis.call('ZREVRANGEBYLEX', P .. ARGV[1], before, '-', 'LIMIT', 0, looked)
load(ids)
local told, n, last = {'', 0}, 0, #ids == looked and ids[#ids] or ''
for _, id in ipairs(ids) do
  local job = jobs[id]
  local fields, matches = job and whole(job), job and true
  for at = 5, #ARGV, 2 do
    matches = matches and fields[tonumber(ARGV[at])] == ARGV[at + 1]
  end
  if matches then
    n = n + 1
    if limit > 0 then
      told[#told + 1] = id
      told[#told + 1] = joined(job)
      if n == limit then
        last = id
        break
      end
    end
  end
end
told[1], told[2] = last, n
return told
