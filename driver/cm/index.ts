export { CmService, type ConnectionCounts } from './cm-service.ts';
