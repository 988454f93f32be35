#!/bin/bash
# Runs in the container. Works with the official image (zkServer.sh on the path) and
# with one made of Debian's packages (jars only). The server is the container's first
# process either way, so signals reach it.
while [ -s /zkcontainer/hold ]; do sleep 0.05; done
if command -v zkServer.sh >/dev/null; then
  exec zkServer.sh start-foreground /conf/zoo.cfg
fi
# The manifest of Debian's zookeeper.jar names its libraries, but not the one of Netty's
# jars that TLS needs (Debian's netty-codec.jar, from libnetty-java).
# shellcheck disable=SC2086 # the flags are several words
exec java $JVMFLAGS -Dorg.slf4j.simpleLogger.showDateTime=true \
  "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS" \
  -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar:/usr/share/java/netty-codec.jar \
  org.apache.zookeeper.server.quorum.QuorumPeerMain /conf/zoo.cfg
