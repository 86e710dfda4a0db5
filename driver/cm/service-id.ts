/** Service IDs of ports. Source: IBTA annex A11, A11.2.2. */
import { ipServicePrefix } from '../../abi/index.ts';

const tcpPortSpace = 0x06n;

/** Service ID of a port in the TCP port space. */
export const serviceIdOf = (port: number): bigint => ipServicePrefix | (tcpPortSpace << 16n) | BigInt(port);

/** The port of such a service ID. */
export const portOfService = (serviceId: bigint): number => Number(serviceId & 0xffffn);
