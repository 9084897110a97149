/* Numbers as people read them; the same texts as aotcli/render/units.py gives (a test compares them). */

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const TIB = 2 ** 40;

/** A number with so many digits after the point. Halves go to the even digit, as they do in Python. */
function fixed(number, digits) {
  const scaled = Math.abs(number) * 10 ** digits;
  const low = Math.floor(scaled);
  if (scaled - low !== 0.5 || low % 2) return number.toFixed(digits);
  return (Math.sign(number) * (low / 10 ** digits)).toFixed(digits);
}

/** Bytes with a binary unit: "6.09 GiB", "474.7 MiB", "512 B". */
function bytesText(nbytes) {
  const size = Math.abs(nbytes);
  const sign = nbytes < 0 ? "-" : "";
  if (size < KIB) return `${sign}${size} B`;
  // Thresholds sit where rounding would print 1024.0 of the smaller unit.
  if (size < MIB - Math.floor(KIB / 20)) return `${sign}${fixed(size / KIB, 1)} KiB`;
  if (size < GIB - Math.floor(MIB / 20)) return `${sign}${fixed(size / MIB, 1)} MiB`;
  if (size < TIB - Math.floor(GIB / 200)) return `${sign}${fixed(size / GIB, 2)} GiB`;
  return `${sign}${fixed(size / TIB, 2)} TiB`;
}

/** A change of bytes with its sign: "+4.51 GiB", "−3.0 MiB", "same". */
function deltaText(nbytes) {
  if (nbytes === 0) return "same";
  return `${nbytes > 0 ? "+" : "−"}${bytesText(Math.abs(nbytes))}`;
}

function countText(count) {
  return count.toLocaleString("en-US");
}

function plural(count, noun, pluralNoun) {
  return `${countText(count)} ${count === 1 ? noun : pluralNoun || `${noun}s`}`;
}

/** A large number with a decimal prefix: "2.15 TFLOP". */
function magnitudeText(number, unit = "") {
  const prefixes = [
    [1e18, "E"],
    [1e15, "P"],
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  for (const [size, prefix] of prefixes) {
    if (Math.abs(number) >= size * 0.9995) {
      const scaled = number / size;
      return `${fixed(scaled, Math.abs(scaled) < 9.995 ? 2 : 1)} ${prefix}${unit}`;
    }
  }
  return `${number} ${unit}`.trimEnd();
}

/** A share in percent with one decimal: "25.2". */
function percentText(part, whole) {
  if (!whole) return "0.0";
  const share = (100 * part) / whole;
  return share > 0 && share < 0.05 ? "<0.1" : fixed(share, 1);
}

/** Steps of a scale for bytes: round numbers of one binary unit, at most `most` of them. */
function byteTicks(largest, most) {
  const unit = largest >= TIB ? TIB : largest >= GIB ? GIB : largest >= MIB ? MIB : largest >= KIB ? KIB : 1;
  const sizes = [1 / 8, 1 / 4, 1 / 2, 1, 2, 2.5, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000];
  const step = unit * (sizes.find((size) => largest / (size * unit) <= most && (unit > 1 || size >= 1)) ?? 1000);
  const ticks = [];
  for (let tick = 0; tick <= largest; tick += step) ticks.push(tick);
  return ticks;
}

/** A tick's text, without zeros that say nothing. */
function tickText(tick) {
  return tick === 0 ? "0" : bytesText(tick).replace(/\.?0+ /, " ");
}
