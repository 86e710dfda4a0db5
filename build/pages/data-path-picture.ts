/**
 * docs/pictures/data-path.svg: two hosts, two devices and their links, with the arrows of a WRITE. Blocks and caches are those that a
 * machine reports whenever the picture is made. `npm run docs` writes it; a spec compares it.
 */
import '../../runtime/node.ts';
import { readFileSync, writeFileSync } from 'node:fs';
import { diagramFile, layoutOf } from '../../explain/diagram/index.ts';
import { cacheNameOf } from '../../explain/text/titles.ts';
import { Machine } from '../../machine/index.ts';

const file = new URL('../../docs/pictures/data-path.svg', import.meta.url);
const label =
  'Two hosts, two devices, PCIe and the cable: numbered arrows show a WRITE from its post to its completion';

/** Names of a device's blocks, as its report has them. */
export async function blocksOfDevice(): Promise<{ readonly blocks: string[]; readonly caches: string[] }> {
  await using machine = await Machine.create({ set: { 'host.memory.sizeMib': 64 } });
  await machine.run();
  const { hca } = (await machine.report()).nodes[0]!;
  return { blocks: Object.keys(hca.blocks), caches: Object.keys(hca.caches).map(cacheNameOf) };
}

/** The picture for the present sources. */
export async function dataPathPicture(): Promise<string> {
  const device = await blocksOfDevice();
  const parts = [0, 1].flatMap((node) => [
    { process: `host${node}`, blocks: ['core 0'], caches: [] },
    { process: `hca${node}`, ...device },
  ]);
  return `${diagramFile(layoutOf(parts, true), label)}\n`;
}

export const readPicture = (): string => readFileSync(file, 'utf8');

if (import.meta.main) writeFileSync(file, await dataPathPicture());
