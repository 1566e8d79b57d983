-- ARGV: ids. Answers for each job its token, and that of the lease whose loss is counted as a crash, or nothing. Only
-- reads.
local facts = {}
for _, id in ipairs(ARGV) do
  local job, charged = job_of(id), redis.call('ZSCORE', P .. 'charged', id)
  facts[#facts + 1] = job and job[TOKEN] or ''
  facts[#facts + 1] = charged and digits[charged] or ''
end
return facts
