/** `hca wire FILE`: a packet capture as conversations, one connection after another. */
import { basename } from 'node:path';
import type { Command } from 'commander';
import { CaptureReading } from '../../analyser/capture/index.ts';
import { ConfigurationError, codeOf, visible } from '../../base/index.ts';
import { pageOf, textSection } from '../../explain/page/index.ts';
import { captureNotes } from '../../explain/text/capture-notes.ts';
import { conversationText } from '../../explain/text/conversation-text.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { readPieces } from '../../runtime/pieces.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import { integer } from '../options.ts';
import { exitFailed, Screen, writeJson } from '../output.ts';
import { wireResultOf } from './wire-json.ts';

/** Default number of kept lines: about 100 MiB. */
const LINES = 250_000;
const LINES_MAX = 10_000_000;

interface WireOptions extends HtmlChoice {
  readonly trouble?: boolean;
  readonly lines?: number;
  readonly json?: string;
}

/** Adds the command with its options. */
export function addWireCommand(program: Command): void {
  program
    .command('wire')
    .description(
      'read a capture (pcap, pcapng, also gzipped) as conversations of InfiniBand, RoCE v1 and v2, and iWARP: requests, answers, gaps, retransmissions, management datagrams',
    )
    .argument('<file>', 'the capture: of --pcap, tcpdump, Wireshark; - for standard input')
    .option('--trouble', 'only errors and the recovery from them')
    .option(
      '--lines <count>',
      `most lines that are shown; all packets are counted (default ${LINES})`,
      integer(1, LINES_MAX),
    )
    .option('--json <file>', 'write it as JSON; - is standard output')
    .option(...htmlOption)
    .action(readWire);
}

async function readWire(file: string, options: WireOptions, command: Command): Promise<void> {
  checkWritable(options.html);
  checkWritable(options.json);
  const isTroubleOnly = options.trouble === true;
  const reading = new CaptureReading({ lines: options.lines ?? LINES, isTroubleOnly });
  await readFile(file, reading);
  const screen = new Screen(options.json);
  const text = conversationText(reading.conversations(), isTroubleOnly);
  screen.print(text);
  const notes = captureNotes(reading);
  for (const note of notes) screen.print(note);
  const title = file === '-' ? 'standard input' : basename(file);
  const head = headOf(command, { title, words: [file], sentences: notes });
  writePage(options, () => pageOf(head, [textSection('Conversations', text)]), screen);
  if (options.json !== undefined)
    writeJson(options.json, {
      schema: 'hca-wire/1',
      ...wireResultOf(file === '-' ? file : title, reading, isTroubleOnly),
    });
  if (!reading.isWhole) process.exitCode = exitFailed;
}

/** @throws ConfigurationError for a file that is missing or is not a capture */
async function readFile(file: string, reading: CaptureReading): Promise<void> {
  const name = file === '-' ? 'standard input' : visible(file);
  try {
    const damage = await readPieces(file, (piece) => {
      reading.push(piece);
      return reading.stream.isReadable;
    });
    reading.end(damage);
  } catch (error) {
    throw new ConfigurationError('capture', name, `a file that can be read (${codeOf(error)})`);
  }
  const [problem] = reading.stream.problems;
  if (problem?.isNoCapture === true)
    throw new ConfigurationError('capture', name, `a file of pcap or pcapng: ${problem.reason}`);
}
