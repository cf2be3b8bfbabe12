// Every operation of the console. A test holds them against the schema.

export const START = `query Start { feedCursor viewer { name role permissions } }`;

const NODE_ROW = `fragment NodeRow on ComputeNode {
  id identityKey hostname displayName state connectivity lastSeenAt
  devices(class: GPU, first: 64) { totalCount nodes { id gpuProduct healthy missing } }
  latestSnapshot {
    receivedAt
    sections {
      gpus { enumeration reason driverVersion gpus { uuid name } }
      os { kernel distro { prettyName } }
    }
  }
}`;

export const NODES = `query Nodes($filter: NodeFilter, $after: Cursor) {
  nodes(filter: $filter, orderBy: HOSTNAME, first: 100, after: $after) {
    totalCount
    pageInfo { hasNextPage endCursor }
    nodes { ...NodeRow }
  }
}
${NODE_ROW}`;

export const ROWS = `query Rows($ids: [ID!]!) {
  nodes(filter: { id: $ids }, first: 100) { nodes { ...NodeRow } }
}
${NODE_ROW}`;

export const COUNT = `query Count($filter: NodeFilter) { nodes(filter: $filter, first: 0) { totalCount } }`;

const CHANGE = `fragment Change on InventoryChange { type deviceId before after }`;

const STATUS_FIELDS = `fragment Status on ComputeNode {
  id identityKey hostname displayName managementAddress tenantId
  state connectivity provisionState power role trust maintenance cordoned draining
  noScheduleReasons generation observedGeneration lastSeenAt agentVersion protocol features bootId
  site { id name } pool { id name class }
  conditions { type status reason message since noSchedule }
  inventoryStatus { state reportedAt appliedAt appliedDigest reportedDigest failedAt error missingSections }
}`;

export const STATUS = `query Status($id: ID!) { computeNode(id: $id) { ...Status } }
${STATUS_FIELDS}`;

const SECTIONS = `fragment Sections on SnapshotSections {
  sha256Of_system: sha256(section: "system")
  sha256Of_cpu: sha256(section: "cpu")
  sha256Of_memory: sha256(section: "memory")
  sha256Of_gpus: sha256(section: "gpus")
  sha256Of_nics: sha256(section: "nics")
  sha256Of_disks: sha256(section: "disks")
  sha256Of_os: sha256(section: "os")
  sha256Of_images: sha256(section: "images")
  system {
    productUuid systemSerial boardSerial chassisSerial vendor product board
    biosVendor biosVersion biosDate bmcVersion virtualization notKnown { ...Unknown }
  }
  cpu {
    arch vendor model sockets cores threads isolated flags numaNodes { id cpus } notKnown { ...Unknown }
  }
  memory {
    totalBytes swapBytes numaNodes { id totalBytes } hugePages { sizeKiB count }
    dimms { locator sizeBytes type speedMTs partNumber serial } notKnown { ...Unknown }
  }
  gpus {
    enumeration reason driverVersion cudaDriverVersion kernelModule
    gpus {
      uuid index name serial pciBusId numaNode vramMiB unifiedMemory architecture computeCapability vbios partNumber
      eccMode { current pending } migMode { current pending }
      migInstances { gi ci uuid profile memoryMiB }
      nvlinks { link state remote }
      fabric { state status clusterUuid cliqueId health healthIssues }
      health {
        rowRemap { correctable uncorrectable pending failure }
        retiredPages { sbe dbe pending }
        eccUncorrectable { volatile aggregate }
      }
      pcieLinkWidth { current max } virtualization lost
    }
    notKnown { ...Unknown }
  }
  nics {
    nics {
      name mac permanentMac kind pciBusId driver firmware numaNode removable
      vfs { index mac pciBusId }
      rdma { device nodeGuid ports { port guid linkLayer rateGbps } }
    }
    fabrics { name adapters rateGbps }
    notKnown { ...Unknown }
  }
  disks {
    disks { name wwn serial namespace model sizeBytes rotational transport pciBusId busPath }
    filesystems { mount type totalBytes shared }
    notKnown { ...Unknown }
  }
  os {
    distro { id version prettyName } kernel arch kvmAvailable
    containerRuntimes { name version } fabricManager { name version } imex { version nodes }
    engines { name version }
    notKnown { ...Unknown }
  }
  images {
    images { reference digest sizeBytes } weights { path sizeBytes shared } notKnown { ...Unknown }
  }
}
fragment Unknown on UnknownFact { fact availability }`;

export const NODE = `query Node($id: ID!) {
  computeNode(id: $id) {
    ...Status
    devices(first: 1000) {
      totalCount
      nodes {
        id class gpuProduct vramGiB index pciBusId numaNode healthy bookable missing partitionPending attributes
        notKnown { ...Unknown }
      }
    }
    snapshots(first: 20) { totalCount nodes { id digest receivedAt advisory } }
    latestSnapshot {
      id digest receivedAt advisory
      diff { from { id receivedAt } to { id receivedAt } changes { ...Change } }
      sections { ...Sections }
    }
  }
}
${STATUS_FIELDS}
${CHANGE}
${SECTIONS}`;

export const DIFF = `query Diff($id: ID!) {
  snapshot(id: $id) { diff { from { id receivedAt } to { id receivedAt } changes { ...Change } } }
}
${CHANGE}`;

export const RAW = `query Raw($id: ID!, $section: String!) {
  snapshot(id: $id) { sections { raw(section: $section) sha256(section: $section) } }
}`;

export const EVENTS = `subscription Events($after: Cursor) {
  events(after: $after) {
    __typename id cursor type at nodeId
    ... on NodeInventoryChanged { sections advisory changes { type } }
    ... on NodeHardwareChanged { change { ...Change } }
    ... on NodeConditionChanged { condition status reason message noSchedule }
    ... on OtherEvent { payload }
  }
}
${CHANGE}`;
