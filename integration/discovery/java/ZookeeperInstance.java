package org.springframework.cloud.zookeeper.discovery;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/** Stands for the class of that name in Spring Cloud Zookeeper: the same properties, for Jackson. */
public class ZookeeperInstance {
    private String id;
    private String name;
    private Map<String, String> metadata = new HashMap<>();

    @SuppressWarnings("unused") // Jackson calls it
    private ZookeeperInstance() {
    }

    public ZookeeperInstance(String id, String name, Map<String, String> metadata) {
        this.id = id;
        this.name = name;
        this.metadata = metadata;
    }

    public String getId() {
        return id;
    }

    public void setId(String id) {
        this.id = id;
    }

    public String getName() {
        return name;
    }

    public void setName(String name) {
        this.name = name;
    }

    public Map<String, String> getMetadata() {
        return metadata;
    }

    public void setMetadata(Map<String, String> metadata) {
        this.metadata = metadata;
    }

    @Override
    public String toString() {
        return name + new TreeMap<>(metadata);
    }
}
