# /etc/profile sets PATH anew in a login shell (ssh, a tmux window); this puts
# back the image's own.
PATH=/opt/agent/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
export PATH
