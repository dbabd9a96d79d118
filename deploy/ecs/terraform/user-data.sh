#!/bin/bash
# Takes the volume, which the instance before may still hold, and joins the cluster
# only when it is mounted: a task never starts without its state.
set -euo pipefail
dnf install -y awscli-2
token=$(curl -sfX PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' http://169.254.169.254/latest/api/token)
instance=$(curl -sf -H "X-aws-ec2-metadata-token: $token" http://169.254.169.254/latest/meta-data/instance-id)
volume=${volume}
until aws ec2 attach-volume --region ${region} --volume-id "$volume" --instance-id "$instance" --device /dev/sdf; do sleep 5; done
device=/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_$(echo "$volume" | tr -d -)
until [ -e "$device" ]; do sleep 1; done
# 2 means that there is no file system: the volume is new. Any other failure must
# not make one over what is there.
found=0
blkid -p "$device" || found=$?
[ "$found" -ne 2 ] || mkfs.ext4 -m 0 "$device"
mkdir -p /var/lib/sluice /etc/systemd/system/ecs.service.d
echo "$device /var/lib/sluice ext4 noatime,nodev,nosuid,noexec,nofail 0 2" >> /etc/fstab
mount /var/lib/sluice
# Of the volume, not of the folder under it: without the volume the daemon cannot write.
chown 65532:65532 /var/lib/sluice
chmod 0700 /var/lib/sluice
# After a reboot, too.
printf '[Unit]\nRequiresMountsFor=/var/lib/sluice\n' > /etc/systemd/system/ecs.service.d/state.conf
systemctl daemon-reload
echo ECS_CLUSTER=${cluster} >> /etc/ecs/ecs.config
