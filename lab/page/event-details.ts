/** An event of a picture, in words. */
import { html, nothing, type TemplateResult } from 'lit-html';
import { timeText } from '../../explain/text/format.ts';
import type { OperationPicture, PictureRecord } from '../protocol.ts';
import { colourOf } from './diagram.ts';
import { nsText } from './watched.ts';

/** A record with its numbers and bytes. */
export function eventDetails(
  picture: Pick<OperationPicture, 'tracks' | 'decoded'>,
  record: PictureRecord,
  atPs: number,
): TemplateResult {
  const { process, group, name } = picture.tracks[record.track]!;
  const { label, fromPs, toPs, arrivesPs, inMemoryPs, values, decoded } = record;
  const effect = inMemoryPs === atPs ? ': in memory now' : arrivesPs === atPs ? ': arrives now' : '';
  const lasts = toPs > fromPs ? `, ${timeText(toPs - fromPs)}` : '';
  const times = [
    `from ${nsText(fromPs)}${lasts}`,
    ...(arrivesPs === undefined ? [] : [`arrives at ${nsText(arrivesPs)}`]),
    ...(inMemoryPs === undefined ? [] : [`in memory at ${nsText(inMemoryPs)}`]),
  ];
  return html`<div class="detail"><b><i class="mark c${colourOf(record)}"></i>${label}${effect}</b>
    <span class="dim">${process}, ${group === 'pcie' || group === 'cable' ? `${group} ${name}` : name}; ${times.join(', ')}</span>
    ${values.length === 0 ? nothing : html`<p class="dim">${values.map(([key, value]) => `${key} ${value}`).join(', ')}</p>`}
    ${decoded.map((at) => {
      const event = picture.decoded[at]!;
      return html`<p>${event.summary}</p>${event.sections.map(
        ({ title, fields }) =>
          html`<dl class="layout"><dt>${title}</dt><dd>${fields.map((field) => html`<code>${field}</code> `)}</dd></dl>`,
      )}`;
    })}
  </div>`;
}
