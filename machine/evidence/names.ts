/** Names of states and services of a QP, by their codes in its context. */
import { QpState, ServiceType } from '../../abi/index.ts';
import type { QpStateName, Service } from './evidence.ts';

export const stateNames: Readonly<Record<number, QpStateName>> = {
  [QpState.RST]: 'RESET',
  [QpState.INIT]: 'INIT',
  [QpState.RTR]: 'RTR',
  [QpState.RTS]: 'RTS',
  [QpState.SQER]: 'SQE',
  [QpState.SQD]: 'SQD',
  [QpState.ERR]: 'ERR',
};

export const services: Readonly<Record<number, Service>> = {
  [ServiceType.RC]: 'RC',
  [ServiceType.UC]: 'UC',
  [ServiceType.UD]: 'UD',
  [ServiceType.XRC]: 'XRC',
  [ServiceType.MLX]: 'MLX',
};
