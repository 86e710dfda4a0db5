/** What other rooms use of this one: see README.md. */
export { HcaPort, type LinkStateSource, type LinkTraffic, vlCapOf } from './port.ts';
export { MALFORMED, ManagementAgents, NodeIdentity, SILENT } from './subnet-management-agent.ts';
