/** Interface of this room: see README.md. */
export {
  type EthernetAttachment,
  EthernetSide,
  type EthernetSideSetup,
  type ReceiveChecksums,
} from './ethernet-side.ts';
export type { FlowConditions, FlowMatch } from './flow-rules.ts';
export type { FrameErrors, PauseControl } from './frame-statistics.ts';
export type { FrameDropReason } from './frame-steering.ts';
export { HcaPort, type LinkStateSource, type PortLanes } from './hca-port.ts';
export { HcaPorts } from './hca-ports.ts';
export type { RoceSide } from './roce-side.ts';
export { SubnetAdministration, type SubnetMember } from './subnet-administration.ts';
export { MALFORMED, ManagementAgents, NodeIdentity, SILENT } from './subnet-management-agent.ts';
