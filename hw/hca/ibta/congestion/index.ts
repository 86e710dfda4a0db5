/** Interface of this room: see README.md. */
export { NotificationPoint } from './notification-point.ts';
export {
  type CongestionConfig,
  checkCongestion,
  congestionDefaults,
  congestionParameters,
} from './parameters.ts';
export { ReactionPoint, type ReactionPointSetup } from './reaction-point.ts';
export { trafficClassesOf } from './traffic-classes.ts';
