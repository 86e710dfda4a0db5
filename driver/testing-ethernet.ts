/** The specs' device with a port of Ethernet, and its neighbours. */
import { MemoryManagementFlag } from '../abi/capability-flags.ts';
import { PortType, queryPort } from '../abi/ports.ts';
import { queryDevCap } from '../abi/query-dev-cap.ts';
import type { DriverConfig } from './parameters.ts';
import type { Script } from './testing.ts';
import { goldenDevice } from './testing-answers.ts';
import { TestContext } from './testing-context.ts';

const mac = 0x0002_c912_3456;
const peerMac = 0x0002_c965_4321;
const neighbours = [
  { address: '10.0.0.1', portGuid: 1n, mac },
  { address: '10.0.0.2', portGuid: 2n, mac: peerMac },
];

/** The captured device with an Ethernet port, up, at 40 Gb/s with frames of 4200 bytes, and RoCE v2 if it supports it. */
const ethernetDevice =
  (hasVersion2: boolean): Script =>
  (command) => {
    const answer = goldenDevice(command);
    if (command.name === 'QUERY_PORT') {
      const port = {
        linkUp: 1,
        supportedTypes: PortType.ETHERNET,
        maxEthernetMtu: 4200,
        ethernetSpeed: 0x40,
        logGids: 7,
        logPkeys: 7,
        mac,
      };
      return { output: queryPort.encode(port) };
    }
    if (command.name !== 'QUERY_DEV_CAP') return answer;
    const limits = queryDevCap.decode(answer!.output!);
    const flag = 2 ** MemoryManagementFlag.ROCE_V1_V2;
    const others = limits.memoryManagementFlags & ~flag;
    const memoryManagementFlags = (hasVersion2 ? others | flag : others) >>> 0;
    return { output: queryDevCap.encode({ ...limits, ports: 1, memoryManagementFlags }) };
  };

/** A process with that device open; its host is 10.0.0.1. */
export const openEthernet = (
  hasVersion2: boolean,
  changed: Partial<DriverConfig> = {},
): Promise<TestContext> => TestContext.openWith(ethernetDevice(hasVersion2), neighbours, changed);
