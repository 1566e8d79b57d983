-- ARGV: a type, or nothing for all. Answers type and record of each version. Only reads.
local told = {}
local names = ARGV[1] == '' and redis.call('ZRANGE', P .. 'types', 0, -1) or {}
for _, name in ipairs(names) do
  local type_, fingerprint = string.match(name, '^(.*)' .. SEP .. '(.*)$')
  told[#told + 1] = type_
  told[#told + 1] = redis.call('HGET', P .. 'types:' .. type_, fingerprint)
end
for _, record in ipairs(ARGV[1] ~= '' and redis.call('HVALS', P .. 'types:' .. ARGV[1]) or {}) do
  told[#told + 1] = ARGV[1]
  told[#told + 1] = record
end
return told
