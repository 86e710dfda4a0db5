import { it } from 'vitest';
import { defaultsOf } from '../../base/parameter.ts';
import { LogicalProcess } from '../../sim/index.ts';
import { checkWires } from '../../sim/wires-bench.ts';
import { wireParameters } from '../../wire/index.ts';
import { benchSlot } from '../dma/bus-interface-bench.ts';
import { capabilityParameters } from './capabilities.ts';
import { controlParameters } from './commands/index.ts';
import { Hca, hcaWires } from './hca.ts';
import { hcaParameters } from './parameters.ts';

const makeHca = (): Hca =>
  new Hca({
    ...benchSlot(),
    lp: new LogicalProcess('hca'),
    config: defaultsOf(hcaParameters),
    control: defaultsOf(controlParameters),
    capabilities: defaultsOf(capabilityParameters),
    wire: defaultsOf(wireParameters),
    nodeIndex: 0,
    cables: [],
    subnets: [[{ node: 0, port: 1 }]],
    tap: undefined,
  });

it('the wires of the device lead to blocks that there are, and each port is connected once', () => {
  checkWires(hcaWires, () => makeHca().parts, ['hca', 'dataPath', 'packetEnds', 'tcp']);
});
