/** Interface of this room: see README.md. */
export { infinibandMarks, roceMarks } from './mark-format.ts';
export { NotificationPoint } from './notification-point.ts';
export {
  type CongestionConfig,
  checkCongestion,
  congestionDefaults,
  congestionParameters,
} from './parameters.ts';
export { type Line, ReactionPoint } from './reaction-point.ts';
export { trafficClassesOf } from './traffic-classes.ts';
