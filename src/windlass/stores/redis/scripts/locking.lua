-- Shared by acquire.lua and keep.lua: a lock is remembered for a while after its end, so that its last token gets the same
-- answer when it is given back again.
local REMEMBERED = 600000

-- Between end and owner was a mark once; servers may have such locks.
local function keep_lock(key, token, until_, owner)
  local ttl = math.max(0, until_ - now) + REMEMBERED
  redis.call('SET', key, token .. '\0' .. digits[until_] .. '\0\0' .. owner, 'PX', digits[ttl])
end
