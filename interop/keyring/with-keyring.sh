#!/usr/bin/env bash
# with-keyring.sh STATE DIR COMMAND...: run a command in a session of its own, with a home in DIR and a D-Bus on which the
# Secret Service (gnome-keyring) is
#   unlocked  ready for use; the login keyring is made in the home if it has none
#   locked    waiting for a password that nobody will type
#   stopped   there, but it answers nothing
#   missing   not there
# Whatever it starts ends with it. It needs the Debian packages gnome-keyring and dbus.
set -euo pipefail
state=$1 home=$2
shift 2

export HOME=$home XDG_DATA_HOME=$home/.local/share XDG_CONFIG_HOME=$home/.config XDG_CACHE_HOME=$home/.cache
XDG_RUNTIME_DIR=$(mktemp -d)
export XDG_RUNTIME_DIR
trap 'rm -rf "$XDG_RUNTIME_DIR"' EXIT
unset DISPLAY WAYLAND_DISPLAY # nobody is to be asked
mkdir -p "$XDG_DATA_HOME/keyrings"
chmod 700 "$XDG_DATA_HOME/keyrings"

# No service directories: a bus that starts the daemon by itself would have it in every state.
cat >"$XDG_RUNTIME_DIR/bus.conf" <<'CONF'
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
CONF

in_session() {
  state=$1 daemon=
  shift
  # The daemon does not always go with its bus.
  trap '[ -z "$daemon" ] || { kill -CONT "$daemon"; kill "$daemon"; wait "$daemon"; } 2>/dev/null || true' EXIT
  case $state in
    missing) ;;
    unlocked | stopped) gnome-keyring-daemon --foreground --components=secrets --unlock <<<"a password" >"$HOME/daemon.log" 2>&1 & ;;
    locked) gnome-keyring-daemon --foreground --components=secrets >"$HOME/daemon.log" 2>&1 & ;;
    *) echo "no such state: $state" >&2; exit 2 ;;
  esac
  if [ "$state" != missing ]; then
    daemon=$!
    for ((i = 0; ; i++)); do
      if dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner \
        string:org.freedesktop.secrets 2>/dev/null | grep -q 'boolean true'; then break; fi
      if [ "$i" = 200 ]; then echo "the daemon does not come up:" >&2; cat "$HOME/daemon.log" >&2; exit 1; fi
      sleep 0.05
    done
  fi
  if [ "$state" = stopped ]; then kill -STOP "$daemon"; fi
  "$@"
}
export -f in_session

dbus-run-session --config-file="$XDG_RUNTIME_DIR/bus.conf" -- bash -euc 'in_session "$@"' _ "$state" "$@"
