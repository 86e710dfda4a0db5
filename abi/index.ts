export * from './address-path.ts';
export * from './bar-map.ts';
export * from './capability-flags.ts';
export * from './cm-messages.ts';
export * from './command-status.ts';
export * from './commands.ts';
export * from './cqc.ts';
export * from './cqe.ts';
export * from './doorbell-records.ts';
export * from './doorbells.ts';
export * from './eqc.ts';
export * from './eqe.ts';
export * from './ethernet-statistics.ts';
export * from './flow-rules.ts';
export * from './hcr.ts';
export * from './icm.ts';
export * from './init-hca.ts';
export {
  EtherType,
  IpProtocol,
  Ipv6Extension,
  ipv4Header,
  ipv6Header,
  tcpHeader,
  udpHeader,
  vlanTag,
} from './internet.ts';
export {
  entryAt,
  entryBytes,
  entryOffsetOf,
  entryReadable,
  entryWritable,
  iommuPageBytes,
  levelCount,
  setEntry,
} from './iommu-tables.ts';
export * from './keys.ts';
export * from './mad.ts';
export * from './mad-attributes.ts';
export * from './map-icm.ts';
export * from './mcg.ts';
export * from './mpt.ts';
export * from './mtt.ts';
export * from './notices.ts';
export * from './pci-identity.ts';
export * from './performance-attributes.ts';
export * from './ports.ts';
export * from './ports-ethernet.ts';
export * from './qp-transitions.ts';
export * from './qpc.ts';
export * from './qpc-fields.ts';
export * from './query-adapter.ts';
export * from './query-dev-cap.ts';
export * from './query-fw.ts';
export * from './srqc.ts';
export * from './static-configuration.ts';
export * from './subnet-administration.ts';
export * from './tcp-connection.ts';
export * from './vendor-syndromes.ts';
export * from './wqe.ts';
export * from './wqe-inline.ts';
export * from './wqe-opcodes.ts';
