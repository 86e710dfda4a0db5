/** Interface of this room: see README.md. */
export { HcaPorts } from './hca-ports.ts';
export { HcaPort, type LinkStateSource, type LinkTraffic, vlCapOf } from './port.ts';
export { SubnetAdministration, type SubnetMember } from './subnet-administration.ts';
export { MALFORMED, ManagementAgents, NodeIdentity, SILENT } from './subnet-management-agent.ts';
