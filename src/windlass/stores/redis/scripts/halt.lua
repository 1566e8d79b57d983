-- ARGV: whether to pause or to let go on, then the schedules.
for at = 2, #ARGV do
  local found = redis.call('HGET', P .. 'schedules', ARGV[at])
  if found then
    local known = split(found)
    if ARGV[1] == '0' then
      known[PAUSED] = ''
    elseif known[PAUSED] == '' then
      known[PAUSED] = NOW
    end
    write_schedule(ARGV[at], known)
    news.due = true
  end
end
wake()
return 1
