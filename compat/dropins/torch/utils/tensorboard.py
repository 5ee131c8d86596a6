"""torch.utils.tensorboard: SummaryWriter of the package tensorboardX, or else one that writes scalars and texts."""

try:
    from tensorboardX import SummaryWriter as _SummaryWriter

    class SummaryWriter(_SummaryWriter):
        """tensorboardX's, with the arguments that PyTorch's has."""

        def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
            """Write a number, or a tensor or array of one; PyTorch's switches of how it is stored change nothing."""
            super().add_scalar(tag, scalar_value, global_step, walltime)

except ImportError:
    import os
    import socket
    import struct
    import time

    def _number(value):
        """Protocol Buffers' varint (https://protobuf.dev/programming-guides/encoding)."""
        value &= 2**64 - 1
        parts = []
        while value > 0x7F:
            parts.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*parts, value])

    def _field(number, value):
        """A field of a message: an integer, a double or float (packed by the caller), bytes or text."""
        if isinstance(value, int):
            return _number(number << 3) + _number(value)
        data = value.encode() if isinstance(value, str) else value
        return _number(number << 3 | 2) + _number(len(data)) + data

    def _record(data):
        """A record of an event file: TFRecord (https://www.tensorflow.org/tutorials/load_data/tfrecord)."""
        length = struct.pack("<Q", len(data))
        return length + _checksum(length) + data + _checksum(data)

    def _checksum(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc = crc >> 8 ^ _CASTAGNOLI[(crc ^ byte) & 0xFF]
        crc ^= 0xFFFFFFFF
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    def _castagnoli(byte):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        return byte

    _CASTAGNOLI = [_castagnoli(byte) for byte in range(256)]

    class SummaryWriter:
        """Writes scalars and texts for TensorBoard; other kinds of summaries need the package tensorboardX.

        Args:
            log_dir: folder of the event file; by default runs/<time>_<host><comment>.
            comment: ends the default folder's name.
            filename_suffix: ends the file's name.
        """

        def __init__(
            self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""
        ):  # fmt: skip
            host = socket.gethostname()
            self.log_dir = str(log_dir or os.path.join("runs", time.strftime("%b%d_%H-%M-%S_") + host + comment))
            os.makedirs(self.log_dir, exist_ok=True)
            name = f"events.out.tfevents.{int(time.time()):010d}.{host}.{os.getpid()}.{id(self)}{filename_suffix}"
            self._path, self._below = os.path.join(self.log_dir, name), {}
            self._write(_field(3, "brain.Event:2"))

        def _write(self, event, walltime=None):
            moment = _number(1 << 3 | 1) + struct.pack("<d", time.time() if walltime is None else walltime)
            with open(self._path, "ab") as file:
                file.write(_record(moment + event))

        def _add(self, value, step, walltime):
            self._write(_field(2, int(step or 0)) + _field(5, _field(1, value)), walltime)

        def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
            """Write a number, or a tensor or array of one."""
            value = _number(2 << 3 | 5) + struct.pack("<f", float(scalar_value))
            self._add(_field(1, str(tag)) + value, global_step, walltime)

        def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
            """Write several numbers under one tag, each into a folder of its own below log_dir."""
            for tag, value in tag_scalar_dict.items():
                folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
                if folder not in self._below:
                    self._below[folder] = SummaryWriter(folder)
                self._below[folder].add_scalar(main_tag, value, global_step, walltime)

        def add_text(self, tag, text_string, global_step=None, walltime=None):
            """Write a text, which TensorBoard shows as Markdown."""
            one = _field(2, _field(2, _field(1, 1)))  # a tensor's shape: (1,)
            tensor = _field(1, 7) + one + _field(8, str(text_string))  # 7: of strings
            kind = _field(1, _field(1, "text"))
            self._add(_field(1, f"{tag}/text_summary") + _field(9, kind) + _field(8, tensor), global_step, walltime)

        def get_logdir(self):
            """The folder of the event file."""
            return self.log_dir

        def flush(self):
            """Nothing to do: each record is written at once."""

        close = flush

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            self.close()

        def __getattr__(self, name):
            if name.startswith("add_"):
                drawn = "; tapegrad.viz.graph draws graphs without it" if name == "add_graph" else ""
                raise ImportError(f"SummaryWriter.{name} needs the package tensorboardX: pip install tensorboardX{drawn}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
