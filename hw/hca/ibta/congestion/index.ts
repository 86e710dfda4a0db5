/** Interface of this room: see README.md. */
export { NotificationPoint } from './notification-point.ts';
export type { CongestionConfig } from './parameters.ts';
export { congestionDefaults } from './parameters.ts';
export { ReactionPoint, type ReactionPointSetup } from './reaction-point.ts';
export { trafficClassesOf } from './traffic-classes.ts';
