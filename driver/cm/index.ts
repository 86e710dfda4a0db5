export { CmService } from './cm-service.ts';
export type { ConnectorCounts } from './connector.ts';
export type { StreamOfQp } from './iw-connection.ts';
