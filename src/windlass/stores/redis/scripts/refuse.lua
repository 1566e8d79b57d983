-- ARGV: for each late transition id, token, the token of its job as it was seen, the end of the line, and whether the
-- loss of its lease is counted as a crash no longer. Answers 1 for each that is done with, 0 where the job moved on since.
local function refuse(id, token, seen, rest, acquits)
  local job = job_of(id)
  if not job then
    return 1
  end
  local charged = tonumber(redis.call('ZSCORE', P .. 'charged', id) or -1) == tonumber(token)
  if job[TOKEN] ~= seen or charged ~= acquits then
    return 0
  end
  if acquits then
    job[CRASHES] = digits[math.max(0, job[CRASHES] - 1)]
    remove_all(P .. 'charged', {id})
  end
  tell(id, job, 'x', token, rest)
  flush()
  return 1
end

go_on_when_full()
local written = {}
for at = 1, #ARGV, 5 do
  written[#written + 1] = refuse(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4] == '1')
end
return written
