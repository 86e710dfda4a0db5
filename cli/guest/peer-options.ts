/** `--peer FILE` and its related options: a simulated host next to a guest, and the program that it runs. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { ConfigurationError, textOfThrown } from '../../base/index.ts';
import type { PeerOptions } from '../../guests/serve/index.ts';
import type { JsonValue } from '../../machine/index.ts';

export interface PeerChoice {
  readonly peer?: string;
  readonly peerArgs?: string;
}

/** @param others alternatives to a file, for people */
export const addPeerOptions = (command: Command, others = ''): Command =>
  command
    .option(
      '--peer <file>',
      `a simulated host at the other end of the cable, which runs the program that this module exports by default, or as <file>#<name>${others}`,
    )
    .option('--peer-args <json>', "the program's args");

/** @throws ConfigurationError for a missing file, args that are not JSON, or args without a program */
export function peerOptionsOf({ peer, peerArgs }: PeerChoice): PeerOptions | undefined {
  if (peer === undefined) {
    if (peerArgs === undefined) return undefined;
    throw new ConfigurationError('--peer-args', peerArgs, 'an option beside --peer');
  }
  const [, file = peer, exportName] = /^(.*)#([^#/]+)$/.exec(peer) ?? [];
  if (!existsSync(file)) throw new ConfigurationError('--peer', file, 'a module of JavaScript or TypeScript');
  const url = pathToFileURL(resolve(file));
  return {
    run: { url: url.href, ...(exportName === undefined ? {} : { exportName }) },
    ...(peerArgs === undefined ? {} : { args: parsed(peerArgs) }),
  };
}

function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new ConfigurationError('--peer-args', text, `JSON (${textOfThrown(error)})`);
  }
}
