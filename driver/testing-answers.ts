/** Answers of the specs' device: those of the device in the golden captures. */

import { SmpAttribute, smp, smpDataOffset } from '../abi/mad.ts';
import { PortState, portInfo } from '../abi/mad-attributes.ts';
import { type HcrLine, readGolden } from '../abi/testing/golden.ts';
import { fromHex, viewOf } from '../base/bytes.ts';
import type { Answer, Script, SeenCommand } from './testing.ts';

const golden = readGolden();

/** The commands of one capture, in order. */
export const goldenCommands = (file: string): HcrLine[] =>
  golden.filter((line): line is HcrLine => line.kind === 'hcr' && line.file === file);

/** The input mailbox of a captured command, padded with the zeros the capture left out. */
export const inputOf = (line: HcrLine, lengthBytes = 512): Uint8Array =>
  fromHex(line.input ?? '', lengthBytes);

const queries = new Map(
  golden.flatMap((line) =>
    line.kind === 'device_answer' ? [[line.op, fromHex(line.bytes, line.bytes.length / 2)]] : [],
  ),
);

/** First captured answer to a MAD, by attribute. */
const mads = new Map<number, Uint8Array>();
for (const line of golden) {
  if (line.kind !== 'hcr' || line.op !== 'MAD_IFC' || line.device_output === undefined) continue;
  const attribute = smp.fields.attributeId.get(viewOf(inputOf(line)), 0);
  if (!mads.has(attribute)) mads.set(attribute, fromHex(line.device_output, 256));
}

/** Answers queries and MADs as the capturing device did; the port is active from the start. */
export const goldenDevice: Script = (command: SeenCommand): Answer | undefined => {
  if (command.name === 'MAD_IFC') return { output: madAnswer(command) };
  if (command.name === 'SET_ICM_SIZE') return { immediate: 16n };
  const output = queries.get(command.name);
  return output === undefined ? undefined : { output };
};

function madAnswer(command: SeenCommand): Uint8Array {
  const attribute = smp.fields.attributeId.get(viewOf(command.input), 0);
  const answer = mads.get(attribute)!.slice();
  if (attribute === SmpAttribute.PORT_INFO) {
    portInfo.fields.portState.set(viewOf(answer), smpDataOffset, PortState.ACTIVE);
  }
  return answer;
}
