import { describe, expect, it } from 'vitest';
import { Machine } from '../machine.ts';
import { configHashOf, configurationOf } from '../profile/index.ts';
import { parsedTopology } from '../topology/index.ts';
import { faultListing, faultText } from './index.ts';
import { exampleFabric } from './listing.ts';
import { checkedFaults, parsedFault } from './plan.ts';

const textOf = (option: string): string => faultText(checkedFaults([parsedFault(option)], 2)[0]!);

describe('the text of a fault', () => {
  it.each(faultListing().flatMap(({ example, more = [] }) => [example, ...more]))(
    'parses to the fault that it was made from: %s',
    (example) => {
      const read = (text: string) => checkedFaults([parsedFault(text)], 4, parsedTopology(exampleFabric))[0]!;
      const fault = read(example);
      expect(read(faultText(fault))).toEqual(fault);
    },
  );

  it('is the same for every spelling of the fault', () => {
    expect(textOf('nth=3-3,packet=LATE,delay=2000ns,node=1')).toBe('packet=late,nth=3,delay=2us,node=1');
    expect(textOf('packet=corrupted,nth=1-')).toBe('packet=corrupted,nth=every,node=0');
    expect(textOf('packet=corrupted,nth=1')).toBe('packet=corrupted,node=0');
    expect(textOf('packet=lost,nth=1,chance=0.1')).toBe('packet=lost,nth=1,chance=10%,node=0');
    expect(textOf('packet=Lost,opcode=0x0a,psn=+07-07,qpn=0x48')).toBe(
      'packet=lost,qpn=72,psn=+7,opcode=RC_RDMA_WRITE_ONLY,node=0',
    );
    expect(textOf('command=0x016,status=0x9')).toBe('command=SW2HW_CQ,status=BAD_RES_STATE,node=0');
    expect(textOf('port=down,after=access,nth=4-9,delay=1500ps')).toBe(
      'port=down,after=access,nth=4-9,delay=1500ps,node=0',
    );
  });
});

describe('faults of a machine', () => {
  it('are part of its configuration: another fault, another hash', async () => {
    const hashOf = async (...options: string[]): Promise<string> => {
      await using machine = await Machine.create({ faults: options.map(parsedFault) });
      return machine.configHash;
    };
    const none = await hashOf();
    expect(none).toBe(configHashOf(configurationOf()));
    const hashes = [
      none,
      await hashOf('packet=corrupted,nth=5'),
      await hashOf('packet=corrupted,nth=6'),
      await hashOf('packet=corrupted,nth=5', 'packet=corrupted,nth=6'),
    ];
    expect(new Set(hashes).size).toBe(4);
    expect(await hashOf('packet=corrupted,nth=5-5')).toBe(hashes[1]);
  });
});
