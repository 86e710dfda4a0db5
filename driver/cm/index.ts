export { CmService } from './cm-service.ts';
export type { ConnectorCounts } from './connector.ts';
export type { StreamOfQp } from './iw-connection.ts';
export { MadAgent } from './mad-agent.ts';
export { permissiveLid } from './management-headers.ts';
export type { ReceivedMad } from './management-queue-pair.ts';
